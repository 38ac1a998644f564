/** Packages of Debian that Python packages are compiled with, or whose programs and libraries they use. */
import { browserLibraries } from '../browsers/playwright.ts';
import type { PythonProject } from './python-project.ts';

const debianPackages: Readonly<Record<string, readonly string[]>> = {
  cairocffi: ['libcairo2-dev'],
  cairosvg: ['libcairo2-dev'],
  'camelot-py': ['ghostscript', 'poppler-utils'],
  'ffmpeg-python': ['ffmpeg'],
  graphviz: ['graphviz'],
  moviepy: ['ffmpeg'],
  mysqlclient: ['default-libmysqlclient-dev'],
  'opencv-python': ['libgl1', 'libglib2.0-0'],
  'openai-whisper': ['ffmpeg'],
  pdf2image: ['poppler-utils'],
  playwright: browserLibraries,
  psycopg2: ['libpq-dev'],
  pycairo: ['libcairo2-dev'],
  pycurl: ['libcurl4-openssl-dev'],
  pydub: ['ffmpeg'],
  pygraphviz: ['graphviz', 'libgraphviz-dev'],
  pyodbc: ['unixodbc-dev'],
  pytesseract: ['tesseract-ocr'],
  'python-ldap': ['libldap-dev', 'libsasl2-dev'],
  'python-magic': ['libmagic1'],
  wand: ['libmagickwand-dev'],
  weasyprint: ['libpango-1.0-0', 'libpangoft2-1.0-0'],
  xmlsec: ['libxmlsec1-dev'],
};

/** By the names in requirements.txt, and in the keys, lists and lockfiles of the other tools. */
export function findPythonLibraries({ files }: PythonProject): readonly string[] {
  const found = new Set<string>();
  for (const name of ['requirements.txt', 'pyproject.toml', 'Pipfile', 'uv.lock', 'poetry.lock', 'pdm.lock'])
    for (const line of (files.get(name) ?? '').split('\n')) {
      const text = line
        .slice(0, 300)
        .trim()
        .replace(/^name = /, '')
        .replace(/^["']/, '');
      const key = /^[A-Za-z0-9][\w.-]*/.exec(text)?.[0].toLowerCase().replaceAll(/[_.]+/g, '-');
      for (const debian of (key !== undefined && Object.hasOwn(debianPackages, key) && debianPackages[key]) || [])
        found.add(debian);
    }
  return [...found];
}
