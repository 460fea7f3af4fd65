import { boolean, object, text } from '../rest/json-schema.ts';

/** v2 names every path parameter `id`. */
export const byId = object({ id: text({ minLength: 1 }) });

export const dateTime = (description: string) => text({ format: 'date-time', description });

export const virtualGpu = boolean({
  description: 'Berth only: true where the GPU is only a name, without hardware behind it; else left out',
});
