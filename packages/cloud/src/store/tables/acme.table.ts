import type { Sealer } from '../../support/crypto.ts';
import type { AcmeStore, StoredCertificate } from '../acme-store.ts';
import type { Database } from '../database.ts';
import { execute, row, sql } from '../sql.ts';

const CERTIFICATE = 'acme certificate';
const CHALLENGE = 'acme challenge ';

/** The state of ACME is in rows of `settings`. */
export function acmeTable(database: Database, sealer: Sealer): AcmeStore {
  const find = async (name: string): Promise<string | undefined> => {
    const found = await database.read(() =>
      row<{ value: string }>(sql`select value from settings where name = ${name}`),
    );
    return found && sealer.open(found.value, name);
  };
  const save = (name: string, text: string): Promise<void> =>
    database.write(function* () {
      yield* execute(
        sql`insert into settings (name, value) values (${name}, ${sealer.seal(text, name)})
          on conflict (name) do update set value = excluded.value`,
      );
    });
  return {
    accountKey: async (directory, fresh) => {
      const name = `acme account ${directory}`;
      const known = await find(name);
      if (known !== undefined) return known;
      const sealed = sealer.seal(fresh(), name);
      await database.write(function* () {
        yield* execute(
          sql`insert into settings (name, value) values (${name}, ${sealed}) on conflict (name) do nothing`,
        );
      });
      return (await find(name)) as string;
    },
    findCertificate: async () => {
      const text = await find(CERTIFICATE);
      return text === undefined ? undefined : (JSON.parse(text) as StoredCertificate);
    },
    saveCertificate: ({ certificate, key }) => save(CERTIFICATE, JSON.stringify({ certificate, key })),
    findChallenge: (token) => find(`${CHALLENGE}${token}`),
    saveChallenge: (token, answer) => save(`${CHALLENGE}${token}`, answer),
    removeChallenges: () =>
      database.write(function* () {
        yield* execute(sql`delete from settings where name like ${`${CHALLENGE}%`}`);
      }),
  };
}
