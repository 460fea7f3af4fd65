/** A check ends with this where it cannot tell, with the reason why. */
export class SkippedError extends Error {}
