import { addonTypes } from '#shared/platform/addons.ts';
import { describeAddons } from '#shared/platform/contract/addons.ts';
import { createFakeAddons } from './addons.ts';

for (const type of addonTypes) {
  describeAddons('fake', type, async () => {
    const addons = createFakeAddons();
    return {
      addons,
      client: {
        write: async (uri, value) => void addons.open(uri).set('value', value),
        read: async (uri) => addons.open(uri).get('value'),
      },
      stop: async () => undefined,
    };
  });
}
