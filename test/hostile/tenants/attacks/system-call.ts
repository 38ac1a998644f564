/** System calls that Node has no function for. */
import { dlopen, getInt32, getRawPointer } from 'node:ffi';

const { functions } = dlopen('libc.so.6', {
  syscall: { arguments: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64', 'i64'], return: 'i64' },
  __errno_location: { arguments: [], return: 'pointer' },
});

export interface CallResult {
  /** -1 when it failed. */
  value: number;
  /** 0 when it did not fail. */
  errno: number;
}

type Argument = number | bigint | string | Uint8Array;

/** @param number by processor architecture, as in unistd.h; strings are given with a NUL at their end */
export function systemCall(number: { x64: number; arm64: number }, ...given: readonly Argument[]): CallResult {
  const buffers = given.map((argument) => (typeof argument === 'string' ? Buffer.from(`${argument}\0`) : argument));
  const [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n, f = 0n] = buffers.map((argument) =>
    argument instanceof Uint8Array ? getRawPointer(argument) : BigInt(argument),
  );
  const own = process.arch === 'arm64' ? number.arm64 : number.x64;
  const value = Number(functions.syscall(BigInt(own), a, b, c, d, e, f));
  return { value, errno: value === -1 ? getInt32(functions.__errno_location()) : 0 };
}
