/** Names of the test databases that this file has open. Apart from what opens them, which most files have no need of. */
export const openDatabases = new Set<string>();
