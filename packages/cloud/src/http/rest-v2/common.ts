import { object, text } from '../rest/schema.ts';

/** v2 names every path parameter `id`. */
export const byId = object({ id: text({ minLength: 1 }) });

export const instant = (description: string) => text({ format: 'date-time', description });
