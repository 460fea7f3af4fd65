import { useState } from 'react';
import { useWrite } from '../api/queries.ts';
import { usePermissions } from '../api/session.ts';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Page } from '../components/page.tsx';
import { Note } from '../components/states.tsx';
import { ApiKeys } from './keys/api-keys.tsx';
import { API_KEYS, S3_KEYS, SESSIONS } from './keys/revocation.ts';
import type { Revocation } from './keys/revocation.ts';
import { S3Keys } from './keys/s3-keys.tsx';
import { Sessions } from './keys/sessions.tsx';

export default function KeysPage() {
  const { manageKeys } = usePermissions();
  const [doomed, setDoomed] = useState<Revocation>();
  const revoke = useWrite(API_KEYS, S3_KEYS, SESSIONS);
  return (
    <Page
      title="Keys & sessions"
      description="What opens this account: keys for programs, and browsers that are signed in."
    >
      {!manageKeys && (
        <Note>Your key may list keys, but not create or revoke them: that needs full access.</Note>
      )}
      <ApiKeys canManage={manageKeys} onRevoke={setDoomed} />
      <S3Keys canManage={manageKeys} onRevoke={setDoomed} />
      <Sessions onRevoke={setDoomed} />
      <ConfirmDialog
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        title={doomed?.title ?? ''}
        lost={doomed?.lost}
        action={doomed?.action ?? ''}
        onConfirm={() => revoke.mutateAsync({ path: doomed?.path ?? '', method: 'DELETE' })}
      />
    </Page>
  );
}
