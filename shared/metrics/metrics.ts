/**
 * What the control plane tells about its own work. Nothing of it names an app, a tenant or a person: whoever may read
 * the metrics learns how the platform does, and nothing about whom it serves.
 */
export interface Metrics {
  /** An answer of the API. `route` is its template ('/v1/apps/:id'), never the path that was asked for. */
  observeRequest(request: { method: string; route: string; status: number; seconds: number }): void;
  /** A push, from its last byte on: 'accepted' when at least one ref moved or is to move. */
  observePush(push: { outcome: 'accepted' | 'rejected' | 'failed'; seconds: number }): void;
  /** One run of a build; 'ended' when it was canceled or its platform stopped. */
  observeBuild(build: { outcome: 'succeeded' | 'failed' | 'ended'; seconds: number }): void;
  /** Packs of a repository that were joined into one. */
  observeRepack(repack: { packs: number; seconds: number }): void;
  /** Objects of a repository that were found unreachable, and others that were so for long enough to be removed. */
  observeGarbage(garbage: { unreachable: number; removed: number }): void;
  /** One attempt at a job. */
  observeJob(job: { name: string; outcome: 'done' | 'failed'; seconds: number }): void;
}
