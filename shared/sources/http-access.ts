import type { Credentials } from '#shared/sources/guarded-request.ts';
import type { SourceToken } from '#shared/sources/source-hosts.ts';

/** What a request for a repository sends to prove that it may read it, as `git` does it: HTTP Basic. */
export function credentialsFor(url: string, token: SourceToken | undefined): Credentials | undefined {
  if (token === undefined) return undefined;
  const text = new TextEncoder().encode(`${token.user}:${token.value}`);
  return { origin: new URL(url).origin, headers: { authorization: `Basic ${text.toBase64()}` } };
}

/** The likely cause of a 401, 403 or 404, and what to do. Begins with ': '. */
export function missingHint(token: SourceToken | undefined): string {
  return token === undefined
    ? ': it does not exist or is private. For a private repository set a token with `paas git:source:set URL --token`, or its SSH address with a deploy key'
    : ': it does not exist, or the token may not read it. Set another with `paas git:source:set URL --token`';
}
