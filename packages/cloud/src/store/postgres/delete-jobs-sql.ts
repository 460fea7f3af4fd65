/**
 * Deletes jobs with all that belongs to them, and answers how many. `selected` is a query of their
 * `endpoint_id` and `seq` that locks them; `also` is a further step, which may use the table `gone`.
 */
export function deleteJobsSql(selected: string, also = ''): string {
  const deleteFrom = (table: string): string =>
    `delete from ${table} using gone where ${table}.endpoint_id = gone.endpoint_id and ${table}.seq = gone.seq`;
  return `with gone as materialized (${selected}),
    deleted_jobs as (${deleteFrom('jobs')}),
    deleted_requests as (${deleteFrom('job_requests')}),
    deleted_chunks as (${deleteFrom('job_chunks')})
    ${also === '' ? '' : `, further as (${also})`}
    select count(*)::int as deleted from gone`;
}
