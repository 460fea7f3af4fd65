import { useState } from 'react';
import { useNavigate } from '@tanstack/react-router';
import { useWrite } from '../../../api/queries.ts';
import { usePermissions } from '../../../api/session.ts';
import type { Endpoint } from '../../../api/types.ts';
import { Button } from '../../../components/button.tsx';
import { ConfirmDialog } from '../../../components/dialog.tsx';
import { Card, Facts } from '../../../components/page.tsx';
import { useToasts } from '../../../components/toast.tsx';
import { hardwareOf, scalingOf } from '../endpoint-words.ts';
import type { TabProps } from '../tab-props.ts';
import { SettingsForm } from './settings-form.tsx';

export default function SettingsTab({ endpoint }: TabProps) {
  const { write } = usePermissions();
  return write ? (
    <>
      <SettingsForm key={endpoint.id} endpoint={endpoint} />
      <Danger endpoint={endpoint} />
    </>
  ) : (
    <Card title="Settings">
      <Facts
        facts={[
          ['Image', <code key="image">{endpoint.image}</code>],
          ['Hardware', hardwareOf(endpoint)],
          ['Workers', `${endpoint.workers.min} to ${endpoint.workers.max}`],
          ['Scaling', scalingOf(endpoint)],
          ['Flash boot', endpoint.flashboot],
          ['Data centers', endpoint.dataCenterIds.join(', ') || 'anywhere'],
          ['Network volumes', endpoint.networkVolumes.join(', ') || 'none'],
          ['Execution timeout', endpoint.timeout === 0 ? 'no limit' : `${endpoint.timeout / 1000} s`],
          ['Variables', Object.keys(endpoint.env).join(', ') || 'none'],
        ]}
      />
    </Card>
  );
}

function Danger({ endpoint }: { endpoint: Endpoint }) {
  const [open, setOpen] = useState(false);
  const remove = useWrite('=/v2/serverless');
  const navigate = useNavigate();
  const toasts = useToasts();
  return (
    <Card
      title="Delete the endpoint"
      actions={
        <Button variant="danger" onClick={() => setOpen(true)}>
          Delete …
        </Button>
      }
    >
      <p className="muted">Its address stops working at once, and its jobs and results are gone.</p>
      <ConfirmDialog
        open={open}
        onClose={() => setOpen(false)}
        title={`Delete ${endpoint.name}?`}
        lost={
          'Waiting and running jobs, stored results, releases and logs of its workers are lost. Network ' +
          'volumes, templates and the image stay.'
        }
        action="Delete the endpoint"
        word={endpoint.name}
        onConfirm={async () => {
          await remove.mutateAsync({ path: `/v2/serverless/${endpoint.id}`, method: 'DELETE' });
          toasts.done(`${endpoint.name} is deleted`);
          await navigate({ to: '/serverless' });
        }}
      />
    </Card>
  );
}
