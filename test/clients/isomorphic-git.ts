import fs from 'node:fs';
import isomorphic from 'isomorphic-git';
import http from 'isomorphic-git/http/node';
import type { Address, GitClient } from '#test/clients/client.ts';

/** A client in JavaScript. It does not support SSH, and handles one ref at a time. */
export function openIsomorphicGit(): GitClient {
  const access = ({ url, token }: Address) => ({ url, fs, http, onAuth: () => ({ username: 'git', password: token }) });
  return {
    name: `isomorphic-git ${isomorphic.version()}`,
    transports: ['http'],
    patterns: false,
    clone: (server, dir) => isomorphic.clone({ ...access(server), dir }),
    async fetch(server, dir, refspecs) {
      for (const refspec of refspecs)
        await isomorphic.fetch({
          ...access(server),
          dir,
          ref: refspec.split(':')[0]?.replace('refs/heads/', '') ?? '',
          singleBranch: true,
        });
    },
    async push(server, dir, refspecs) {
      for (const refspec of refspecs) {
        const [from = '', to = ''] = refspec.replace(/^\+/, '').split(':');
        const wanted = from === '' ? { ref: to, delete: true } : { ref: from, remoteRef: to };
        const { ok, error, refs } = await isomorphic.push({ ...access(server), dir, ...wanted, force: refspec.startsWith('+') });
        if (!ok || refs[to]?.ok === false) throw new Error(error ?? JSON.stringify(refs));
      }
    },
  };
}
