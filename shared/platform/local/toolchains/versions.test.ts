import { describe, expect, it } from 'vitest';
import { chooseVersion, newestOfMajors, toComposerRange, toPessimisticRange, toPythonRange, toRange } from './versions.ts';

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

  const rubies = ['2.7.4+1.deb11u6', '3.1.2+7.deb12u1', '3.3.13+0.deb13u1'];
  it.each([
    ['3.1.2', '3.1.2'],
    ['ruby-3.1', '3.1.2'],
    ['~> 3.1', '3.3.13'],
    ['~> 3.1.0', '3.1.2'],
    ['>= 2.7, < 3.2', '3.1.2'],
    ['~> 2.6 or ~> 3.0', '3.3.13'],
    ['>= 3.0 and < 3.3.0', '3.1.2'],
    ['latest', '3.3.13'],
    ['3.2.1', undefined],
    ['jruby-9.4', undefined],
  ])('for %s of Ruby or Elixir is %s', (request, version) => {
    expect(chooseVersion(toPessimisticRange(request) ?? 'none', rubies)?.split('+')[0]).toBe(version);
  });

  it.each([
    ['^8.1', '8.4.28'],
    ['~8.1', '8.4.28'],
    ['~8.2.0', '8.2.36'],
    ['8.2.*', '8.2.36'],
    ['>=7.4 <8.3', '8.2.36'],
    ['>= 7.4, < 8.0', '7.4.33'],
    ['^7.4 | ^8.0', '8.4.28'],
    ['^7.4||~8.2.0', '8.2.36'],
    ['8.3.*', undefined],
  ])('for %s of PHP is %s', (request, version) => {
    expect(chooseVersion(toComposerRange(request) ?? 'none', ['7.4.33', '8.2.36+1.deb12u1', '8.4.28'])?.split('+')[0]).toBe(
      version,
    );
  });

  it('is explained with the newest of each major version, without prereleases', () => {
    expect(newestOfMajors(versions, 3)).toEqual(['26.10.0', '24.16.0', '23.5.0']);
  });
});
