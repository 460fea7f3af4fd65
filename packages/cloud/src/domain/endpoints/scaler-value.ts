import type { Endpoint } from '../records.ts';

/** The older interfaces know whole numbers only, where a queue delay may be half a second. */
export function wholeScalerValue({ scalerValue }: Pick<Endpoint, 'scalerValue'>): number {
  return Math.ceil(scalerValue);
}

/**
 * What a whole number means that was said there: the same that was shown, said again, leaves the exact value.
 */
export function exactScalerValue(
  given: number,
  base: Endpoint,
  scalerType: Endpoint['scalerType'] = base.scalerType,
): number {
  return scalerType === base.scalerType && given === wholeScalerValue(base) ? base.scalerValue : given;
}
