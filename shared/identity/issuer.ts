/** The issuer (`iss`) of access tokens: the URL below which the discovery document and the keys are published. */
export function issuerOf(baseUrl: string): string {
  return `${baseUrl}/v1/auth`;
}
