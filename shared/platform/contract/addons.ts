import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import type { AddonSpec, Addons, AddonType } from '#shared/platform/addons.ts';

/** A client of the add-on's own kind, which knows the address and nothing else. Rejects when it does not get in. */
export interface AddonClient {
  write(uri: string, value: string): Promise<void>;
  /** Undefined when nothing was written. */
  read(uri: string): Promise<string | undefined>;
}

export interface AddonGround {
  addons: Addons;
  client: AddonClient;
  stop(): Promise<void>;
}

const mebibyte = 1024 * 1024;
const password = (): string => crypto.getRandomValues(new Uint8Array(16)).toHex();

/** What every add-on of every ground does. */
export function describeAddons(name: string, type: AddonType, open: () => Promise<AddonGround>): void {
  describe(`add-ons contract: ${type}, ${name}`, () => {
    let ground: AddonGround;
    beforeAll(async () => {
      ground = await open();
    });
    afterAll(() => ground.stop());

    const specOf = (change: Partial<AddonSpec> = {}): AddonSpec => ({
      appId: newUuid<AppId>(),
      tenantId: newTenantId(),
      type,
      replicas: 1,
      memoryBytes: 64 * mebibyte,
      connections: 10,
      password: password(),
      ...change,
    });
    async function untilReady({ appId, replicas }: AddonSpec): Promise<void> {
      await expect
        .poll(() => ground.addons.readAddon(appId, type), { timeout: 20_000 })
        .toEqual({ ready: replicas, desired: replicas });
    }
    async function ensureReady(spec: AddonSpec): Promise<string> {
      const { uri } = await ground.addons.ensureAddon(spec);
      await untilReady(spec);
      return uri;
    }

    it('answers at the address it gives, with the password it was given', async () => {
      const spec = specOf();
      expect(await ground.addons.readAddon(spec.appId, type)).toBeUndefined();
      const credentials = await ground.addons.ensureAddon(spec);
      await untilReady(spec);
      expect(credentials.password).toBe(spec.password);
      expect(new URL(credentials.uri)).toMatchObject({ password: spec.password, hostname: credentials.host });
      expect(Number(new URL(credentials.uri).port)).toBe(credentials.port);
      await ground.client.write(credentials.uri, 'kept');
      expect(await ground.client.read(credentials.uri)).toBe('kept');
    });

    it('lets nobody in with another password, nor without one', async () => {
      const spec = specOf();
      const uri = await ensureReady(spec);
      await expect(ground.client.read(uri.replace(spec.password, password()))).rejects.toThrow(/./);
      await expect(ground.client.read(uri.replace(`:${spec.password}`, ''))).rejects.toThrow(/./);
    });

    it("keeps apps apart: one's password opens nothing of another's", async () => {
      const [one, other] = [specOf(), specOf()];
      const [uri, otherUri] = [await ensureReady(one), await ensureReady(other)];
      await ground.client.write(uri, 'mine');
      expect(await ground.client.read(otherUri)).toBeUndefined();
      await expect(ground.client.read(otherUri.replace(other.password, one.password))).rejects.toThrow(/./);
    });

    it('is one and keeps its data, however often and however many at once ask for it', async () => {
      const spec = specOf();
      await ground.client.write(await ensureReady(spec), 'kept');
      const answers = await Promise.all(Array.from({ length: 4 }, () => ground.addons.ensureAddon(spec)));
      expect(new Set(answers.map(({ uri }) => uri)).size).toBe(1);
      await untilReady(spec);
      expect(await ground.client.read(answers[0]?.uri ?? '')).toBe('kept');
    });

    it('takes a new password: the new one gets in, the old one does not, and the data stays', async () => {
      const spec = specOf();
      const before = await ensureReady(spec);
      await ground.client.write(before, 'kept');
      const after = await ensureReady({ ...spec, password: password() });
      expect(await ground.client.read(after)).toBe('kept');
      await expect(ground.client.read(before)).rejects.toThrow(/./);
    });

    it('takes another plan, and the data stays', async () => {
      const spec = specOf();
      const uri = await ensureReady(spec);
      await ground.client.write(uri, 'kept');
      expect(await ensureReady({ ...spec, memoryBytes: 128 * mebibyte, connections: 20 })).toBe(uri);
      expect(await ground.client.read(uri)).toBe('kept');
    });

    it('lets nobody in while it is stopped, and has its data when it is back', async () => {
      const spec = specOf();
      const uri = await ensureReady(spec);
      await ground.client.write(uri, 'kept');
      expect(await ground.addons.stopAddon(spec.appId, type)).toBe(true);
      expect(await ground.addons.stopAddon(spec.appId, type)).toBe(false);
      await expect(ground.client.read(uri)).rejects.toThrow(/./);
      expect(await ground.addons.readAddon(spec.appId, type)).toEqual({ ready: 0, desired: 0 });
      expect(await ground.client.read(await ensureReady(spec))).toBe('kept');
    });

    it('says whether there was anything to delete, and begins empty afterwards', async () => {
      const spec = specOf();
      expect(await ground.addons.deleteAddon(spec.appId, type)).toBe(false);
      const uri = await ensureReady(spec);
      await ground.client.write(uri, 'gone');
      expect(await ground.addons.deleteAddon(spec.appId, type)).toBe(true);
      expect(await ground.addons.deleteAddon(spec.appId, type)).toBe(false);
      expect(await ground.addons.readAddon(spec.appId, type)).toBeUndefined();
      await expect(ground.client.read(uri)).rejects.toThrow(/./);
      expect(await ground.client.read(await ensureReady(spec))).toBeUndefined();
    });
  });
}
