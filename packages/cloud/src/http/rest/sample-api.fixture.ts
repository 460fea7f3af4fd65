import { operation } from './rest-operation.ts';
import type { Operation } from './rest-operation.ts';
import type { OpenApiOptions } from './openapi.ts';
import * as schema from './json-schema.ts';

/** A small harbour with one of everything that an interface can have, for the tests of this folder. */
const Berth = schema.named(
  'Berth',
  schema.object({
    id: schema.text({ description: 'Its id.', examples: ['b7k2'] }),
    depth: schema.number({ minimum: 0, description: 'Metres of water.' }),
  }),
);
const Cargo = schema.named(
  'Cargo',
  schema.stringEnum(['BULK', 'CONTAINER'], { description: 'What it carries.' }),
);
const Ship = schema.named(
  'Ship',
  schema.object(
    {
      id: schema.text(),
      name: schema.text({ minLength: 1, maxLength: 191, description: 'As painted on the bow.' }),
      cargo: Cargo,
    },
    {
      berth: schema.nullable(Berth),
      arrived: schema.nullable(schema.text({ format: 'date-time' })),
      crew: schema.list(
        schema.object(
          { name: schema.text() },
          { rank: schema.stringEnum(['CAPTAIN', 'MATE'], { default: 'MATE' }) },
        ),
        { maxItems: 40 },
      ),
      flags: schema.map(schema.text(), { description: 'Signals that are up, <b>by mast</b> & `colour`.' }),
      notes: schema.anyValue({ description: 'Whatever the harbour master wrote.' }),
    },
    { description: 'A ship in the harbour.' },
  ),
);
const Problem = schema.named(
  'Problem',
  schema.object(
    { title: schema.text(), status: schema.integer(), detail: schema.text() },
    { errors: schema.list(schema.text()) },
  ),
);
const id = schema.object({ id: schema.text({ description: 'The id of the ship.' }) });
const fields = schema.propertiesOf(Ship);
const ship: schema.Static<typeof Ship> = { id: 's1', name: 'Seeadler', cargo: 'BULK' };

const operations: Operation[] = [
  operation({
    id: 'listShips',
    method: 'GET',
    path: '/ships',
    tag: 'Ships',
    summary: 'List ships',
    access: 'read',
    query: schema.object(
      { year: schema.integer({ minimum: 1900, description: 'The year of arrival.' }) },
      {
        include: schema.commaList(schema.stringEnum(['CREW', 'BERTH']), {
          description: 'What else to tell.',
        }),
        cargo: Cargo,
        names: schema.list(schema.text()),
        limit: schema.integer({ default: 10, maximum: 100 }),
      },
    ),
    status: 200,
    response: schema.object({ ships: schema.list(Ship) }),
    handle: () => Promise.resolve({ ships: [ship] }),
  }),
  operation({
    id: 'createShip',
    method: 'POST',
    path: '/ships',
    tag: 'Ships',
    summary: 'Let a ship in',
    description: 'A berth is found by `depth`.\n\nA second paragraph.',
    access: 'write',
    body: schema.named(
      'CreateShip',
      schema.object(
        { name: fields['name']!, cargo: Cargo },
        { berth: Berth, crew: fields['crew']!, flags: fields['flags']! },
        { minProperties: 1 },
      ),
    ),
    bodyLimit: 20_000_000,
    status: 201,
    response: Ship,
    errorStatuses: [409, 400],
    handle: () => Promise.resolve(ship),
  }),
  operation({
    id: 'getShip',
    method: 'GET',
    path: '/ships/{id}',
    tag: 'Ships',
    summary: 'One ship',
    access: 'read',
    params: id,
    status: 200,
    response: Ship,
    errorStatuses: [404],
    handle: () => Promise.resolve(ship),
  }),
  operation({
    id: 'removeShip',
    method: 'DELETE',
    path: '/ships/{id}',
    tag: 'Ships',
    summary: 'Send a ship away',
    access: 'operator',
    params: id,
    status: 204,
    errorStatuses: [404, 409],
    handle: () => Promise.resolve(),
  }),
  operation({
    id: 'tide',
    method: 'GET',
    path: '/tide/{day}',
    tag: 'Weather',
    summary: 'The tide of a day',
    access: 'open',
    status: 200,
    response: schema.map(schema.number()),
    handle: () => Promise.resolve({ high: 3.2 }),
  }),
  operation({
    id: 'chart',
    method: 'GET',
    path: '/chart',
    tag: 'Weather',
    summary: 'The chart to look at',
    access: 'open',
    text: 'text/html',
    status: 200,
    handle: () => Promise.resolve(),
  }),
];

export const sampleApi: OpenApiOptions = {
  title: 'Harbour',
  version: '1.2.3',
  description: 'Ships come and go.',
  prefix: '/v9',
  serverUrl: 'https://harbour.test/',
  operations,
  errorSchema: Problem,
  errorMediaType: 'application/problem+json',
  commonErrorStatuses: [429, 401, 403, 422],
  securityDescription: 'Send your key as a bearer token.',
  tags: [
    { name: 'Weather', description: 'Wind and water.' },
    { name: 'Ships', description: 'What floats.' },
    { name: 'Unused', description: 'Nothing here.' },
  ],
  responseHeaders: { RateLimit: { description: 'What is left of the limit.', schema: schema.text() } },
};
