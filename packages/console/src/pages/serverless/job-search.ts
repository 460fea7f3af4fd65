export interface JobSearch {
  status?: string | undefined;
  id?: string | undefined;
  text?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  fingerprint?: string | undefined;
  /** Where the page of the list begins; the newest jobs without it. */
  cursor?: string | undefined;
  /** The job whose details are open. */
  job?: string | undefined;
}

const FIELDS = ['status', 'id', 'text', 'from', 'to', 'fingerprint', 'cursor', 'job'] as const;

/**
 * The filter as the address of the page has it. The router reads numbers and lists from it; all of them are
 * text here.
 */
export function readJobSearch(given: Readonly<Record<string, unknown>>): JobSearch {
  const search: JobSearch = {};
  for (const field of FIELDS) {
    const value = given[field];
    if (value !== undefined && value !== null && value !== '') search[field] = String(value);
  }
  return search;
}

/** The same as the query of the API. A time without a zone is local. */
export function searchQuery({ status, id, text, from, to, fingerprint }: JobSearch): Record<string, string> {
  const query: Record<string, string | undefined> = {
    status,
    idPrefix: id,
    text,
    from: instant(from),
    to: instant(to),
    fingerprint,
  };
  return Object.fromEntries(
    Object.entries(query).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
    ),
  );
}

/** The same as the filter of an action on many jobs. */
export function searchFilter(search: JobSearch): Record<string, unknown> {
  const { status, ...rest } = searchQuery(search);
  return { ...rest, ...(status !== undefined && { status: status.split(',') }) };
}

function instant(text: string | undefined): string | undefined {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : new Date(time).toISOString();
}
