import { AppError } from '#shared/errors.ts';
import { apiGroup, type Kind } from './kinds.ts';

/** What was asked, for the sentence that says why it failed. */
export interface Attempt {
  /** As in roles of Kubernetes: 'get', 'list', 'watch', 'create', 'patch', 'delete'. */
  verb: string;
  kind: Kind;
  /** Left out for several objects. */
  name?: string | undefined;
  namespace?: string | undefined;
  subresource?: string | undefined;
}

/** The parts of a `Status` that the API server answers with, as far as the sentence needs them. */
export interface StatusBody {
  message?: string | undefined;
  reason?: string | undefined;
  /** Of `details`: the kind that was not found. */
  detailsKind?: string | undefined;
}

/** What the API server has answered, as the cause of a refusal. */
class RefusedRequest extends Error {
  readonly httpStatus: number;
  constructor(httpStatus: number, message: string) {
    super(message);
    this.httpStatus = httpStatus;
  }
}

/** Whether waiting helps: the API server did not answer, or failed, or was busy. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof AppError)) return false;
  const { cause } = error;
  return !(cause instanceof RefusedRequest) || cause.httpStatus >= 500 || cause.httpStatus === 429;
}

/** One sentence on what the API server refused and what to do; the answer itself is the cause, for the operator's log. */
export function refusal(attempt: Attempt, httpStatus: number, status: StatusBody): AppError {
  const cause = new RefusedRequest(httpStatus, `${httpStatus} ${status.reason ?? ''}: ${status.message ?? 'no message'}`);
  return new AppError(httpStatus === 409 ? 'conflict' : 'internal', describeRefusal(attempt, httpStatus, status), { cause });
}

/** @internal for its test */
export function describeRefusal(attempt: Attempt, httpStatus: number, { message = '', reason, detailsKind }: StatusBody): string {
  const { verb, kind, namespace } = attempt;
  const object = describeObject(attempt);
  const refused = `Kubernetes refused to ${verb} ${object}`;
  if (httpStatus === 401)
    return 'The Kubernetes API server does not accept the credentials of the platform. Renew its kubeconfig or service account.';
  if (httpStatus === 404 && detailsKind === 'namespaces')
    return `${refused}: the namespace ${namespace ?? ''} does not exist. Create it, or install the chart again.`;
  if (httpStatus === 404)
    return `The cluster does not know the kind ${kind.kind} (${kind.apiVersion}). Install ${kind.from ?? 'a supported version of Kubernetes'}.`;
  const quota = /exceeded quota: ([^,]+), requested: (.+?), used: (.+), limited: (.+)$/.exec(message);
  if (quota !== null) {
    const [, name = '', requested = '', used = '', limited = ''] = quota;
    return `${refused}: the quota ${name} allows ${limited}, ${used} is used, and this needs ${requested}. Scale down, or raise the quota.`;
  }
  const policy = /ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.+)$/s.exec(message);
  if (policy !== null) return `${refused}: the admission policy ${policy[1]} says: ${endSentence(policy[2] ?? '')}`;
  const webhook = /admission webhook "([^"]+)" denied the request:? ?(.*)$/s.exec(message);
  if (webhook !== null) return `${refused}: the admission webhook ${webhook[1]} says: ${endSentence(webhook[2] ?? 'nothing')}`;
  const podSecurity = /violates PodSecurity "([^"]+)": (.+)$/s.exec(message);
  if (podSecurity !== null)
    return `${refused}: it violates the pod security level ${podSecurity[1]} of its namespace (${podSecurity[2]}).`;
  if (httpStatus === 403 && / cannot \S+ resource /.test(message)) {
    const resource = attempt.subresource === undefined ? kind.plural : `${kind.plural}/${attempt.subresource}`;
    const group = apiGroup(kind).group || 'the core API';
    const scope = namespace === undefined ? 'in the whole cluster' : `in the namespace ${namespace}`;
    return `The platform lacks the right to ${verb} ${object}. Give its service account the verb \`${verb}\` on \`${resource}\` (${group}) ${scope}.`;
  }
  const said = message === '' ? `status ${httpStatus}` : message;
  return `${refused}: ${said}${reason === 'Invalid' ? ' This is a fault of the platform; please report it.' : ''}`;
}

/** What the API server does not answer, and where it was expected. */
export function unreachable(server: string, cause: unknown): AppError {
  return new AppError(
    'internal',
    `The Kubernetes API server at ${server} does not answer (${describeCause(cause)}). Apps that run are not affected; check the API server and the network.`,
    { cause },
  );
}

function describeObject({ kind, name, namespace }: Attempt): string {
  const what = name === undefined ? `objects of the kind ${kind.kind}` : `the ${kind.kind} ${name}`;
  return namespace === undefined ? what : `${what} in the namespace ${namespace}`;
}

function describeCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return (cause as NodeJS.ErrnoException).code ?? cause.message;
  return (error as NodeJS.ErrnoException).code ?? error.message;
}

const endSentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);
