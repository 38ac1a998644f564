import { mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseMirrors, sumDownloads } from './debian-archive.ts';
import { linkAlternatives, linkLibraries } from './debian-roots.ts';
import { toSemver } from './debian-tools.ts';

describe("a version of Debian's packages", () => {
  it.each([
    ['3.1.2-7+deb12u1', '3.1.2+7.deb12u1'],
    ['1:27.3.4.1+dfsg-1+deb13u4', '27.3.4+1.dfsg.1.deb13u4'],
    ['1.18.3.dfsg-1', '1.18.3+dfsg.1'],
    ['8.4.28-1~deb13u1', '8.4.28+1.deb13u1'],
    ['2:7', '7.0.0'],
    ['(none)', undefined],
  ])('%s is compared as %s', (version, semver) => {
    expect(toSemver(version)).toBe(semver);
  });
});

it('what apt would download is summed', () => {
  const printed = [
    "'http://a.example/pool/libc6_2.36_amd64.deb' libc6_2.36_amd64.deb 2758512 SHA256:27d2",
    'Get:1 nothing of this',
    "'http://a.example/pool/f/ffmpeg_7%3a5.1_amd64.deb' ffmpeg_7%3a5.1_amd64.deb 1860000 MD5Sum:12",
  ];
  expect(sumDownloads(printed.join('\n'))).toEqual({ packages: 2, bytes: 4_618_512 });
});

describe('the mirrors of Debian', () => {
  it('are those of the host, without the archives of others', () => {
    const targets = [
      'http://a.example/debian-security/|bookworm-security|main|Debian',
      'http://a.example/debian/|bookworm|main|Debian',
      'http://a.example/debian/|bookworm-updates|main|Debian',
      'http://a.example/debian/|bookworm-backports|main|Debian',
      'http://a.example/debian/|bookworm|contrib|Debian',
      'http://b.example/php/|bookworm|main|deb.example',
      'http://b.example/node/|nodistro|main|nodistro',
    ];
    expect([...parseMirrors(targets.join('\n'))]).toEqual([
      ['-security', 'http://a.example/debian-security/'],
      ['', 'http://a.example/debian/'],
      ['-updates', 'http://a.example/debian/'],
    ]);
  });

  it('are also known before apt has read their lists', () => {
    expect([...parseMirrors('http://a.example/debian/|bookworm|main|$(ORIGIN)\n')]).toEqual([['', 'http://a.example/debian/']]);
  });
});

it('links the programs whose names Debian leaves to the administrator', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'paas-roots-'));
  try {
    for (const path of ['bin/gcc', 'bin/which', 'bin/which.debianutils', 'share/maven/bin/mvn']) {
      await mkdir(dirname(`${directory}/${path}`), { recursive: true });
      await writeFile(`${directory}/${path}`, path);
    }
    await linkAlternatives(`${directory}/bin`);
    expect(await readdir(`${directory}/bin`)).toEqual(['cc', 'gcc', 'mvn', 'which', 'which.debianutils']);
    expect(await readFile(`${directory}/bin/mvn`, 'utf8')).toBe('share/maven/bin/mvn');
  } finally {
    await rm(directory, { recursive: true });
  }
});

it('links libraries of which Debian has several', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'paas-roots-'));
  try {
    await mkdir(`${directory}/x86_64-linux-gnu/blas`, { recursive: true });
    await writeFile(`${directory}/x86_64-linux-gnu/blas/libblas.so.3`, '');
    await linkLibraries(directory);
    expect(await readlink(`${directory}/x86_64-linux-gnu/libblas.so.3`)).toBe('blas/libblas.so.3');
  } finally {
    await rm(directory, { recursive: true });
  }
});
