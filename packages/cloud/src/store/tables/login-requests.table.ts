import type { Sealer } from '../../support/crypto.ts';
import type { Database } from '../database.ts';
import type { LoginRequestStore } from '../login-request-store.ts';
import { assignments, execute, row, rowValues, sql } from '../sql.ts';
import type { Row } from '../sql.ts';
import { forUpdate } from './owned-table.ts';
import type { LoginRequest, LoginStatus } from '../../domain/login-request.ts';

export function loginRequestTable(database: Database, sealer: Sealer): LoginRequestStore {
  const context = (id: string): string => `login request ${id}`;
  const toRow = ({
    id,
    keyName,
    codeChallenge,
    codeChallengeMethod,
    status,
    key,
    createdAt,
    expiresAt,
  }: LoginRequest): Row => ({
    id,
    key_name: keyName,
    code_challenge: codeChallenge,
    code_challenge_method: codeChallengeMethod,
    status,
    sealed_key: key === null ? null : sealer.seal(key, context(id)),
    created_at: createdAt,
    expires_at: expiresAt,
  });
  const fromRow = (found: Row): LoginRequest => ({
    id: String(found['id']),
    keyName: String(found['key_name']),
    codeChallenge: found['code_challenge'] as string | null,
    codeChallengeMethod: found['code_challenge_method'] as string | null,
    status: String(found['status']) as LoginStatus,
    key:
      found['sealed_key'] === null
        ? null
        : sealer.open(String(found['sealed_key']), context(String(found['id']))),
    createdAt: Number(found['created_at']),
    expiresAt: Number(found['expires_at']),
  });
  return {
    insert: (request, atMost) =>
      database.write(function* () {
        yield* execute(sql`delete from login_requests where expires_at < ${request.createdAt}`);
        const open = yield* row<{ count: number }>(sql`select count(*) as count from login_requests`);
        if (Number(open?.count ?? 0) >= atMost) return false;
        yield* execute(sql`insert into login_requests ${rowValues(toRow(request))}`);
        return true;
      }),
    find: (id) =>
      database.read(function* () {
        const found = yield* row<Row>(sql`select * from login_requests where id = ${id}`);
        return found === undefined ? undefined : fromRow(found);
      }),
    change: (id, next) =>
      database.write(function* () {
        const found = yield* row<Row>(sql`select * from login_requests where id = ${id}${forUpdate}`);
        if (found === undefined) return undefined;
        const request = next(fromRow(found));
        yield* execute(sql`update login_requests set ${assignments(toRow(request))} where id = ${id}`);
        return request;
      }),
  };
}
