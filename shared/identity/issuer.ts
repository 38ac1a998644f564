/** `iss` of our access tokens: the address under which discovery and keys are published. */
export function issuerOf(baseUrl: string): string {
  return `${baseUrl}/v1/auth`;
}
