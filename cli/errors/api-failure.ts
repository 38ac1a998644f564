import { CliError, type ExitCode, exitCodes } from '#cli/errors/cli-error.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { ApiError, ForeignAnswerError, UnreachableError } from '#shared/api-client/api-error.ts';

const exitCodeOf: Readonly<Record<string, ExitCode>> = {
  unauthorized: exitCodes.notAllowed,
  forbidden: exitCodes.notAllowed,
  not_found: exitCodes.notFound,
  conflict: exitCodes.conflict,
  validation_failed: exitCodes.usage,
  rate_limited: exitCodes.rateLimited,
  internal: exitCodes.failed,
};

/** How an error of the API client reads in a terminal, and which exit code it has. Undefined for an error of another kind. */
export function toCliError(error: unknown): CliError | undefined {
  if (error instanceof CliError) return error;
  if (error instanceof ApiError) return refusal(error);
  if (error instanceof UnreachableError) return unreachable(error);
  if (error instanceof ForeignAnswerError) {
    return new CliError(oneLine(error.message), {
      exitCode: exitCodes.unreachable,
      hint: 'Check the address. To use another platform: --host URL or PAAS_API_URL.',
      cause: error,
    });
  }
  return undefined;
}

function refusal(error: ApiError): CliError {
  return new CliError(oneLine(error.message), {
    exitCode: exitCodeOf[error.code ?? ''] ?? exitCodes.failed,
    hint: hintFor(error) ?? detailsHint(error),
    cause: error,
  });
}

function hintFor({ code, requestId, retryAfterSeconds }: ApiError): string | undefined {
  if (code === 'unauthorized') return 'Log in with `paas login`. If PAAS_TOKEN is set, it needs a new value.';
  if (code === 'rate_limited') return `Try again in ${retryAfterSeconds ?? 'a few'} s.`;
  if (code === 'internal' && requestId !== undefined)
    return `The log of the platform has more about the request ${oneLine(requestId)}.`;
  return undefined;
}

/** Details that the message does not contain already, in one line. */
function detailsHint({ details, message }: ApiError): string | undefined {
  const parts = details.flatMap((detail) => {
    if (message.includes(detail.message)) return [];
    return [oneLine(detail.path === '' ? detail.message : `${detail.path}: ${detail.message}`)];
  });
  return parts.length === 0 ? undefined : parts.join('; ');
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'its name cannot be looked up at the moment',
  ETIMEDOUT: 'it does not answer',
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer',
  ECONNRESET: 'it closed the connection',
  UND_ERR_SOCKET: 'it closed the connection',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate comes from an authority that this machine does not know',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate comes from an authority that this machine does not know',
  CERT_HAS_EXPIRED: 'its certificate has expired',
};

/** Names the reason, and how to start the platform or to use another. */
function unreachable({ host, cause: error }: UnreachableError): CliError {
  const cause = innermost(error);
  const code = cause !== undefined && 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  return new CliError(
    `Cannot reach the platform at ${host}: ${reasons[code] ?? oneLine(cause?.message ?? 'it ended the stream')}.`,
    {
      exitCode: exitCodes.unreachable,
      hint: /CERT|SIGNATURE/.test(code)
        ? 'If you trust that authority, name the file of its certificate: NODE_EXTRA_CA_CERTS=FILE.'
        : 'Start it with `npm start` in its checkout, or use another with --host URL or PAAS_API_URL.',
      cause: error,
    },
  );
}

/** The first cause of all. An AggregateError (one attempt per address) counts as its first. */
function innermost(error: unknown): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  return innermost(error instanceof AggregateError ? error.errors[0] : error.cause) ?? error;
}
