import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import type { AddonSpec, Addons, AddonType } from '#shared/platform/addons.ts';

/** A client of the add-on's own protocol, which knows nothing but the address. Rejects when the server refuses it. */
export interface AddonClient {
  write(uri: string, value: string): Promise<void>;
  /** Undefined when nothing was written. */
  read(uri: string): Promise<string | undefined>;
}

export interface AddonsFixture {
  addons: Addons;
  client: AddonClient;
  stop(): Promise<void>;
}

const mebibyte = 1024 * 1024;
const password = (): string => crypto.getRandomValues(new Uint8Array(16)).toHex();

/** What an add-on of each type does, with every driver. */
export function describeAddons(name: string, type: AddonType, open: () => Promise<AddonsFixture>): void {
  describe(`add-ons contract: ${type}, ${name}`, () => {
    let fixture: AddonsFixture;
    beforeAll(async () => {
      fixture = await open();
    });
    afterAll(() => fixture.stop());

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
        .poll(() => fixture.addons.readAddon(appId, type), { timeout: 20_000 })
        .toEqual({ ready: replicas, desired: replicas });
    }
    async function ensureReady(spec: AddonSpec): Promise<string> {
      const { uri } = await fixture.addons.ensureAddon(spec);
      await untilReady(spec);
      return uri;
    }

    it('answers at the address that it returns, with the password of the spec', async () => {
      const spec = specOf();
      expect(await fixture.addons.readAddon(spec.appId, type)).toBeUndefined();
      const credentials = await fixture.addons.ensureAddon(spec);
      await untilReady(spec);
      expect(credentials.password).toBe(spec.password);
      expect(new URL(credentials.uri)).toMatchObject({ password: spec.password, hostname: credentials.host });
      expect(Number(new URL(credentials.uri).port)).toBe(credentials.port);
      await fixture.client.write(credentials.uri, 'kept');
      expect(await fixture.client.read(credentials.uri)).toBe('kept');
    });

    it('refuses clients with a wrong password or with none', async () => {
      const spec = specOf();
      const uri = await ensureReady(spec);
      await expect(fixture.client.read(uri.replace(spec.password, password()))).rejects.toThrow(/./);
      await expect(fixture.client.read(uri.replace(`:${spec.password}`, ''))).rejects.toThrow(/./);
    });

    it("shows an app no data of another app, and refuses its password at the other's address", async () => {
      const [one, other] = [specOf(), specOf()];
      const [uri, otherUri] = [await ensureReady(one), await ensureReady(other)];
      await fixture.client.write(uri, 'mine');
      expect(await fixture.client.read(otherUri)).toBeUndefined();
      await expect(fixture.client.read(otherUri.replace(other.password, one.password))).rejects.toThrow(/./);
    });

    it('is created once and keeps its data, however many calls there are at the same time', async () => {
      const spec = specOf();
      await fixture.client.write(await ensureReady(spec), 'kept');
      const answers = await Promise.all(Array.from({ length: 4 }, () => fixture.addons.ensureAddon(spec)));
      expect(new Set(answers.map(({ uri }) => uri)).size).toBe(1);
      await untilReady(spec);
      expect(await fixture.client.read(answers[0]?.uri ?? '')).toBe('kept');
    });

    it('accepts a new password from then on, refuses the old one, and keeps its data', async () => {
      const spec = specOf();
      const before = await ensureReady(spec);
      await fixture.client.write(before, 'kept');
      const after = await ensureReady({ ...spec, password: password() });
      expect(await fixture.client.read(after)).toBe('kept');
      await expect(fixture.client.read(before)).rejects.toThrow(/./);
    });

    it('keeps its data and its address when the plan changes', async () => {
      const spec = specOf();
      const uri = await ensureReady(spec);
      await fixture.client.write(uri, 'kept');
      expect(await ensureReady({ ...spec, memoryBytes: 128 * mebibyte, connections: 20 })).toBe(uri);
      expect(await fixture.client.read(uri)).toBe('kept');
    });

    it('refuses clients while it is stopped, and has its data when it is started again', async () => {
      const spec = specOf();
      const uri = await ensureReady(spec);
      await fixture.client.write(uri, 'kept');
      expect(await fixture.addons.stopAddon(spec.appId, type)).toBe(true);
      expect(await fixture.addons.stopAddon(spec.appId, type)).toBe(false);
      await expect(fixture.client.read(uri)).rejects.toThrow(/./);
      expect(await fixture.addons.readAddon(spec.appId, type)).toEqual({ ready: 0, desired: 0 });
      expect(await fixture.client.read(await ensureReady(spec))).toBe('kept');
    });

    it('reports whether there was anything to delete, and is empty when it is created again', async () => {
      const spec = specOf();
      expect(await fixture.addons.deleteAddon(spec.appId, type)).toBe(false);
      const uri = await ensureReady(spec);
      await fixture.client.write(uri, 'gone');
      expect(await fixture.addons.deleteAddon(spec.appId, type)).toBe(true);
      expect(await fixture.addons.deleteAddon(spec.appId, type)).toBe(false);
      expect(await fixture.addons.readAddon(spec.appId, type)).toBeUndefined();
      await expect(fixture.client.read(uri)).rejects.toThrow(/./);
      expect(await fixture.client.read(await ensureReady(spec))).toBeUndefined();
    });
  });
}
