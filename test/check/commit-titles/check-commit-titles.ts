/** A part of `npm run check`: titles of commits that were not sent yet are short enough to be read in a list. */
import { fileURLToPath } from 'node:url';
import { findLongTitles } from './find-long-titles.ts';

const problems = await findLongTitles(fileURLToPath(new URL('../../..', import.meta.url)));
for (const problem of problems) console.log(problem);
if (problems.length > 0) process.exitCode = 1;
