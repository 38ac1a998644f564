import { readFileSync } from 'node:fs';

/** What other files of the process would disturb: measuring it, and putting something else in the place of a module. */
const own = /\bprocess\.(memoryUsage|cpuUsage|threadCpuUsage|chdir)\b|\bvi\.(mock|doMock|resetModules)\(/;

/** Whether a test file must have a process to itself. */
export const needsOwnProcess = (file: string): boolean => own.test(readFileSync(file, 'utf8'));
