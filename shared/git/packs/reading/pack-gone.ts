/** A file of a pack is not there any more: it was retired, and others hold its objects. Whoever lists the packs again finds those. */
export class PackGone extends Error {}
