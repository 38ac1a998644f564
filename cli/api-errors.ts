import { CliError, type ExitCode, exitCodes } from '#cli/errors.ts';
import { oneLine } from '#cli/output.ts';

const exitCodeOf: Readonly<Record<string, ExitCode>> = {
  unauthorized: exitCodes.notAllowed,
  forbidden: exitCodes.notAllowed,
  not_found: exitCodes.notFound,
  conflict: exitCodes.conflict,
  validation_failed: exitCodes.usage,
  rate_limited: exitCodes.rateLimited,
  internal: exitCodes.failed,
};

/** What the platform refused, in its own words, and what to do about it. */
export class ApiError extends CliError {
  /** As in the envelope; undefined when there was none. */
  readonly code: string | undefined;

  constructor(code: string | undefined, message: string, options: { exitCode: ExitCode; hint?: string }) {
    super(message, options);
    this.name = 'ApiError';
    this.code = code;
  }
}

/** @param body the error envelope, or whatever came in its place */
export function failureOf(body: unknown, { status, headers }: Pick<Response, 'status' | 'headers'>): ApiError {
  const envelope = fieldsOf(fieldsOf(body)['error']);
  const code = textOf(envelope['code']);
  const message = textOf(envelope['message']) ?? `The platform answered ${status}.`;
  const hint = hintFor(code, textOf(envelope['request_id']), headers) ?? detailsHint(envelope['details'], message);
  return new ApiError(code, message, {
    exitCode: exitCodeOf[code ?? ''] ?? exitCodes.failed,
    ...(hint === undefined ? {} : { hint }),
  });
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? oneLine(value) : undefined;
}

function hintFor(code: string | undefined, requestId: string | undefined, headers: Headers): string | undefined {
  if (code === 'unauthorized') return 'Log in with `paas login`; where PAAS_TOKEN is set, it needs a new value.';
  if (code === 'rate_limited') return `Try again in ${headers.get('retry-after') ?? 'a few'} s.`;
  if (code === 'internal' && requestId !== undefined) return `The platform's log says more under ${requestId}.`;
  return undefined;
}

/** Details that the message does not say already, in one line. */
function detailsHint(details: unknown, message: string): string | undefined {
  if (!Array.isArray(details)) return undefined;
  const words = details.flatMap((detail: unknown) => {
    const said = textOf(fieldsOf(detail)['message']);
    if (said === undefined || message.includes(said)) return [];
    const path = textOf(fieldsOf(detail)['path']) ?? '';
    return [path === '' ? said : `${path}: ${said}`];
  });
  return words.length === 0 ? undefined : words.join('; ');
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'its name cannot be looked up just now',
  ETIMEDOUT: 'it does not answer',
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer',
  ECONNRESET: 'it hung up',
  UND_ERR_SOCKET: 'it hung up',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate comes from an authority this machine does not know',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate comes from an authority this machine does not know',
  CERT_HAS_EXPIRED: 'its certificate has expired',
};

/** Nothing answered: says why, and how to start the platform or point elsewhere. */
export function unreachable(host: string, error: unknown): CliError {
  const cause = innermost(error);
  const code = cause !== undefined && 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  return new CliError(
    `Cannot reach the platform at ${host}: ${reasons[code] ?? oneLine(cause?.message ?? 'it ended the stream')}.`,
    {
      exitCode: exitCodes.unreachable,
      hint: /CERT|SIGNATURE/.test(code)
        ? 'Where you trust that authority, give its certificate in NODE_EXTRA_CA_CERTS=FILE.'
        : 'Start it with `npm start` in its checkout, or name another with --host URL or PAAS_API_URL.',
      cause: error,
    },
  );
}

/** An AggregateError (one try per address) counts as its first. */
function innermost(error: unknown): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  return innermost(error instanceof AggregateError ? error.errors[0] : error.cause) ?? error;
}

/** Something answered that is no platform. */
export function foreignAnswer(host: string, status: number): CliError {
  return new CliError(`${host} answers (${status}), but not as a paas platform does.`, {
    exitCode: exitCodes.unreachable,
    hint: 'Check the address: name another with --host URL or PAAS_API_URL.',
  });
}
