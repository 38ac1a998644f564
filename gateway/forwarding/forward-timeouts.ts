/** Time limits of connections and forwarded requests. */
export interface ForwardTimeouts {
  /** Until the TLS handshake of a connection is complete. */
  readonly handshakeMilliseconds: number;
  /** Until the upstream begins its response, counted from the last byte in either direction. */
  readonly responseMilliseconds: number;
  /** Silence within a response (event streams, clients that do not read) or on an upgraded connection. */
  readonly idleMilliseconds: number;
  /** Silence on an upgraded connection after the client has ended its side. */
  readonly halfClosedMilliseconds: number;
  /** How long the upstream may take to send 100 Continue before the body is sent all the same. */
  readonly continueMilliseconds: number;
}
