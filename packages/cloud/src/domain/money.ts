/**
 * Money in whole numbers: rates in nano-dollars an hour, amounts in rate times seconds. A price of up
 * to nine digits behind the point is exact, and so is every sum.
 */
const HOURS_PER_MONTH = 730;
const NANO = 1e9;
const AMOUNTS_PER_NANO = 3600n;

/** Nano-dollars an hour. */
export function hourlyRate(dollarsPerHour: number): number {
  return Math.round(dollarsPerHour * NANO);
}

export function monthlyRate(dollarsPerMonth: number): number {
  return Math.round((dollarsPerMonth / HOURS_PER_MONTH) * NANO);
}

/** US dollars, to the nearest nano-dollar. */
export function dollars(amount: bigint): number {
  return Number((amount + AMOUNTS_PER_NANO / 2n) / AMOUNTS_PER_NANO) / NANO;
}

export function dollarsPerHour(rate: number): number {
  return rate / NANO;
}
