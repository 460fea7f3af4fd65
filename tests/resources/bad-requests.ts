export const LARGE = 50_000_000;
export const long = (length: number): string => 'x'.repeat(length);
export const nested = (levels: number): string =>
  `{"name":"a","image":"b","imageName":"b","env":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`;

export interface BadRequest {
  method?: string;
  /** Below /v1 and below /v2; the same text for both where it is one. */
  path?: string | [string, string];
  body?: unknown;
  headers?: Record<string, string>;
  /** In v1 and in v2. */
  expect: [number, number];
}

/** What a client may get wrong, and what it is told. Without a path: the creation of a template. */
export const BAD_REQUESTS: Record<string, BadRequest> = {
  'JSON that is cut off': { body: '{"name":"a","image":', expect: [400, 400] },
  'JSON with something after it': { body: '{"name":"a","image":"b"} x', expect: [400, 400] },
  'no JSON at all': { body: 'name=a&image=b', expect: [400, 400] },
  'bytes that are no UTF-8': {
    body: new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    expect: [400, 400],
  },
  'an empty body': { body: '', expect: [400, 422] },
  'JSON null': { body: 'null', expect: [400, 422] },
  'a JSON list': { body: '[]', expect: [400, 422] },
  'a JSON text': { body: '"x"', expect: [400, 422] },
  'a number for a name': { body: { name: 1, image: 'b', imageName: 'b' }, expect: [400, 422] },
  'a list for a map': { body: '{"name":"a","image":"b","imageName":"b","env":["A=1"]}', expect: [400, 422] },
  'a number in the environment': {
    body: { name: 'a', image: 'b', imageName: 'b', env: { A: 1 } },
    expect: [400, 422],
  },
  'a key that is not known': {
    body: { name: 'a', image: 'b', imageName: 'b', unknown: 1 },
    expect: [400, 422],
  },
  'a missing key': { body: { name: 'a' }, expect: [400, 422] },
  'an unknown word of a list of words': {
    body: { name: 'a', image: 'b', imageName: 'b', category: 'TPU' },
    expect: [400, 422],
  },
  'a name without letters': { body: { name: '', image: 'b', imageName: 'b' }, expect: [400, 422] },
  'a name that is too long': { body: { name: long(192), image: 'b', imageName: 'b' }, expect: [400, 422] },
  'a prototype in the body': {
    body: '{"name":"a","image":"b","imageName":"b","__proto__":{"isPublic":true}}',
    expect: [400, 400],
  },
  'a prototype in a map': {
    body: '{"name":"a","image":"b","imageName":"b","env":{"__proto__":"x"}}',
    expect: [400, 400],
  },
  'a constructor in the body': {
    body: '{"name":"a","image":"b","imageName":"b","constructor":{"prototype":{}}}',
    expect: [400, 422],
  },
  'a NUL in a text': { body: '{"name":"a\\u0000b","image":"b","imageName":"b"}', expect: [400, 400] },
  'a NUL in a name of the environment': {
    body: '{"name":"a","image":"b","imageName":"b","env":{"A\\u0000":"x"}}',
    expect: [400, 400],
  },
  'half a surrogate pair': { body: '{"name":"\\ud800","image":"b","imageName":"b"}', expect: [400, 400] },
  'a thousand levels': { body: nested(1000), expect: [400, 400] },
  'a size below zero': {
    path: ['/networkvolumes', '/network-volumes'],
    body: { name: 'a', size: -1, dataCenterId: 'LOCAL-1' },
    expect: [400, 422],
  },
  'a size that is no number': {
    path: ['/networkvolumes', '/network-volumes'],
    body: '{"name":"a","size":NaN}',
    expect: [400, 400],
  },
  'a size beyond all numbers': {
    path: ['/networkvolumes', '/network-volumes'],
    body: '{"name":"a","size":1e999,"dataCenterId":"LOCAL-1","dataCenter":"LOCAL-1"}',
    expect: [400, 422],
  },
  'a type of content that is not read': {
    body: '{"name":"a"}',
    headers: { 'content-type': 'text/plain' },
    expect: [415, 415],
  },
  'a form': {
    body: 'name=a',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    expect: [415, 415],
  },
  'a type of content that is none': { body: '{}', headers: { 'content-type': ';' }, expect: [415, 415] },
  'an id that is unknown': { method: 'GET', path: '/templates/unknown', expect: [404, 404] },
  'an id with a NUL': { method: 'GET', path: '/templates/a%00b', expect: [400, 400] },
  'an id that is no valid escape': { method: 'GET', path: '/templates/%E0%A4%A', expect: [400, 400] },
  'an id of 600 characters': { method: 'GET', path: `/templates/${long(600)}`, expect: [404, 404] },
  'an id that climbs': { method: 'GET', path: '/templates/..%2f..%2fetc%2fpasswd', expect: [404, 404] },
  'an id that is SQL': { method: 'DELETE', path: "/templates/'%20or%20'1'='1", expect: [404, 404] },
  'a query with a NUL': {
    method: 'GET',
    path: ['/templates?includePublicTemplates=%00', '/templates?limit=%00'],
    expect: [400, 400],
  },
  'a query that is no choice': {
    method: 'GET',
    path: ['/templates?includePublicTemplates=maybe', '/templates?limit=maybe'],
    expect: [400, 422],
  },
  'an address that is not there': { method: 'GET', path: '/nothing/here', expect: [404, 404] },
  'an address that is not there, with a body that is no JSON': {
    method: 'POST',
    path: '/nothing',
    body: '{',
    expect: [404, 404],
  },
  'an address with a slash too many': {
    method: 'POST',
    path: '/templates/',
    body: { name: 'a' },
    expect: [404, 404],
  },
  'a body that is announced to be too large': { body: new Uint8Array(LARGE), expect: [413, 413] },
};
