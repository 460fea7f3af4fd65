/** How likely a request is to be met now, from the worst to the best. */
export const AVAILABILITY_LEVELS = ['NONE', 'LOW', 'MEDIUM', 'HIGH'] as const;
export type AvailabilityLevel = (typeof AVAILABILITY_LEVELS)[number];

/** From how many such requests on, all met at once, a level holds. */
const MEDIUM_MIN_REQUESTS = 2;
const HIGH_MIN_REQUESTS = 4;

/**
 * How many requests of a size fit, given what each machine has free. A request is never spread over machines.
 */
export function requestsThatFit(freePerMachine: readonly number[], wanted: number): number {
  return freePerMachine.reduce((sum, free) => sum + Math.floor(free / wanted), 0);
}

export function availabilityLevel(requests: number): AvailabilityLevel {
  if (requests < 1) return 'NONE';
  if (requests < MEDIUM_MIN_REQUESTS) return 'LOW';
  return requests < HIGH_MIN_REQUESTS ? 'MEDIUM' : 'HIGH';
}
