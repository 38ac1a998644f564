import { describe, expect, it } from 'vitest';
import { chooseVersion, newestOfMajors, toPythonRange, toRange } from './versions.ts';

const versions = ['18.20.5', '20.2.0', '20.19.1', '22.1.0', '23.5.0', '24.0.0-rc.1', '24.16.0', '26.10.0', '6.0.0-test2016'];

describe('the version that is chosen', () => {
  it.each([
    ['22', '22.1.0'],
    ['20.x', '20.19.1'],
    ['v20.2.0', '20.2.0'],
    ['^20.1', '20.19.1'],
    ['>=18 <23', '22.1.0'],
    ['lts/jod', '22.1.0'],
    ['lts/Hydrogen', '18.20.5'],
    ['lts/*', '26.10.0'],
    ['latest', '26.10.0'],
    ['node', '26.10.0'],
    ['21', undefined],
    ['24.0.0-rc.1', '24.0.0-rc.1'],
  ])('for %s is %s', (request, version) => {
    expect(chooseVersion(toRange(request) ?? 'none', versions)).toBe(version);
  });

  it.each(['twenty', 'path:../node', '22; rm -rf /', '--help'])('for %s is none, because that is no version', (request) => {
    expect(toRange(request)).toBeUndefined();
  });

  it.each([
    ['3.11', '3.11.7'],
    ['==3.11.*', '3.11.7'],
    ['>=3.11', '3.13.0'],
    ['>=3.8, <3.12', '3.11.7'],
    ['~=3.10', '3.13.0'],
    ['~=3.11.2', '3.11.7'],
    ['!=3.13.0,>=3.12,<3.13', '3.12.1'],
    ['^3.9', '3.13.0'],
    ['3.11.11', undefined],
    ['latest', '3.13.0'],
  ])('for %s of Python is %s', (request, version) => {
    expect(chooseVersion(toPythonRange(request) ?? 'none', ['3.8.18', '3.11.7', '3.12.1', '3.13.0'])).toBe(version);
  });

  it('is explained with the newest of each major version, without prereleases', () => {
    expect(newestOfMajors(versions, 3)).toEqual(['26.10.0', '24.16.0', '23.5.0']);
  });
});
