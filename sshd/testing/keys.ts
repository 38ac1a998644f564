import ssh2 from 'ssh2';

/** A key pair as ssh2 handles it; a new Ed25519 one unless a private key is given. */
export function newKey(privateKey: string = ssh2.utils.generateKeyPairSync('ed25519').private): ssh2.ParsedKey {
  const key = ssh2.utils.parseKey(privateKey);
  if (key instanceof Error) throw key;
  return key;
}

/** `type base64` of the public key. */
export function publicKeyOf(key: ssh2.ParsedKey): string {
  return `${key.type} ${key.getPublicSSH().toString('base64')}`;
}
