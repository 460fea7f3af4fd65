import type { Figures } from './bench-report.ts';

export interface Contender {
  name: string;
  measure(): Promise<number>;
}

/** Every side once, then every side again: what disturbs the machine for a while disturbs all of them. */
export async function measureInterleaved(rounds: number, sides: readonly Contender[]): Promise<Figures[]> {
  const figures = sides.map(({ name }) => ({ name, values: [] as number[] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, side] of sides.entries()) figures[index]?.values.push(await side.measure());
  }
  return figures;
}

/** The values of one side. */
export function valuesOf(figures: readonly Figures[], name: string): number[] {
  const found = figures.find((side) => side.name === name);
  if (found === undefined) throw new Error(`${name} was not measured`);
  return found.values;
}
