import { object, text } from '../rest/json-schema.ts';

/** v2 names every path parameter `id`. */
export const byId = object({ id: text({ minLength: 1 }) });

export const dateTime = (description: string) => text({ format: 'date-time', description });
