/** A process that contends for the Lease in its third argument, for the test of leadership: it prints when it leads and when it stops. */
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { awaitLeadership } from '#shared/platform/kubernetes/leadership/await-leadership.ts';

const [, , kubeconfig = '', name = ''] = process.argv;
const say = (word: string): void => void process.stdout.write(`${word} ${Date.now()}\n`);
const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());
say('waits');
const cluster = connectCluster({ kubeconfig });
const options = { cluster, namespace: 'default', name, holder: `process-${process.pid}` };
const leadership = await awaitLeadership(options, stopping.signal);
say('leads');
leadership.lost.addEventListener('abort', () => {
  say('stops');
  process.exit(1);
});
stopping.signal.addEventListener('abort', () => {
  say('stops');
  void leadership.release().then(() => process.exit(0));
});
setInterval(() => undefined, 1000);
