/**
 * What the API is measured against, in a process of its own: the same two queries, by the same driver, and nothing
 * around them. `node bare-server.ts <socket> <database URL>`
 */
import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import pg from 'pg';

const [socket, url] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 20 });
const selectApps =
  'select apps.*, current.version as current_version from apps left join releases as current on current.id = apps.current_release_id';
const app = new Hono();

app.get('/v1/apps/:id', async (c) => {
  const { rows } = await pool.query<Record<string, unknown>>(`${selectApps} where apps.id = $1`, [c.req.param('id')]);
  return c.json({ data: rows[0] });
});

app.get('/v1/apps', async (c) => {
  const page = 'where apps.tenant_id = $1 and apps.deleted_at is null order by apps.created_at desc, apps.id desc limit 51';
  const { rows } = await pool.query<Record<string, unknown>>(`${selectApps} ${page}`, [c.req.header('x-paas-tenant')]);
  return c.json({ data: rows, next_cursor: null });
});

const listener = getRequestListener(app.fetch);
createServer((request, response) => void listener(request, response)).listen(socket, () => console.log('ready'));
