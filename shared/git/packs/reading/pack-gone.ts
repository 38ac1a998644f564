/** A file of a pack was deleted. The pack was retired, and other packs hold its objects: list the packs again. */
export class PackGone extends Error {}
