import { isMapping, type Kind } from './kind.ts';

/** Prices that differ from the built-in ones, by the id of what is priced. */
export interface Prices {
  gpu: Record<string, number>;
  cpu: Record<string, number>;
  disk: Record<string, number>;
}

export const noPrices: Prices = { gpu: {}, cpu: {}, disk: {} };

function isPriceMap(value: unknown): value is Record<string, number> {
  return isMapping(value) && Object.values(value).every((price) => typeof price === 'number' && Number.isFinite(price) && price >= 0);
}

/** Nested, and therefore from the file alone. */
export function priceTable(): Kind<Prices> {
  return {
    allowed: 'sections gpu, cpu and disk, each with ids and prices of at least 0',
    fromFile: (value) => {
      if (!isMapping(value)) return undefined;
      const given = Object.entries(value).filter(([, prices]) => prices !== null);
      if (!given.every(([section, prices]) => Object.hasOwn(noPrices, section) && isPriceMap(prices))) return undefined;
      return { ...noPrices, ...Object.fromEntries(given) };
    },
    toYaml: (value) => JSON.stringify(value),
  };
}
