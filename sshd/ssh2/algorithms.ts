import crypto from 'node:crypto';
import type { Algorithms, KexAlgorithm } from 'ssh2';

/** Added to ssh2 by patches/ (docs/decisions/0011-post-quantum-ssh.md); missing in runtimes without ML-KEM. */
const postQuantum = typeof crypto.encapsulate === 'function' ? ['mlkem768x25519-sha256' as KexAlgorithm] : [];

/**
 * The algorithms the server offers, strongest first: no SHA-1, no CBC, and no compression, which would allow compression
 * bombs. Finite-field key exchanges are left out: each costs tens of milliseconds before anybody has logged in, and every
 * client of the last ten years supports an elliptic curve.
 */
export const algorithms: Algorithms = {
  kex: [
    ...postQuantum,
    'curve25519-sha256',
    'curve25519-sha256@libssh.org',
    'ecdh-sha2-nistp256',
    'ecdh-sha2-nistp384',
    'ecdh-sha2-nistp521',
  ],
  serverHostKey: ['ssh-ed25519', 'ecdsa-sha2-nistp256', 'rsa-sha2-512', 'rsa-sha2-256'],
  cipher: ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'aes128-ctr', 'aes192-ctr', 'aes256-ctr'],
  hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'],
  compress: ['none'],
};
