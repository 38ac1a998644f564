import type { Upstream } from '#gateway/routes/upstream.ts';

/** A response whose head has come, and of which nothing was sent to the client. Either is called once. */
export interface HeldResponse {
  /** Sends it to the client. */
  forward(): void;
  /** Ends it without sending anything. */
  drop(): void;
}

/**
 * Tries a GET at another release that the visitor's release answers with 404: during a rollout a page may ask for an asset that only
 * the other one has. The client gets the other answer where that is better, and else the first.
 */
export interface NotFoundFallback {
  /** Whether a response is kept back: it is forwarded or dropped by this from then on. */
  keepsBack(upstream: Upstream, status: number, response: HeldResponse): boolean;
  /** The other release did not respond: forwards the first response. False when there is none. */
  recover(): boolean;
}

/** @param attempt sends the request to another upstream */
export function createNotFoundFallback(
  chooseOther: (upstream: Upstream) => Upstream | undefined,
  attempt: (upstream: Upstream) => void,
): NotFoundFallback {
  let held: HeldResponse | undefined;
  let isOver = false;
  const recover = (): boolean => {
    if (held === undefined || isOver) return false;
    isOver = true;
    held.forward();
    return true;
  };
  return {
    keepsBack(upstream, status, response) {
      if (isOver) return false;
      if (held !== undefined) {
        if (status < 400) {
          isOver = true;
          held.drop();
          return false;
        }
        response.drop();
        return recover();
      }
      const other = status === 404 ? chooseOther(upstream) : undefined;
      if (other === undefined) return false;
      held = response;
      attempt(other);
      return true;
    },
    recover,
  };
}
