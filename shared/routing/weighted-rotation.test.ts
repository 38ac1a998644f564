import { describe, expect, it } from 'vitest';
import { createWeightedRotation } from './weighted-rotation.ts';

describe('weighted rotation', () => {
  it.each([[[10, 90]], [[25, 75]], [[50, 50]], [[1, 99]], [[33, 33, 34]], [[0, 100]]])(
    'selects exactly by the weights %j in any 100 selections in a row',
    (weights) => {
      const rotation = createWeightedRotation(weights.map((weight, index) => ({ weight, index })));
      const selections = Array.from({ length: 300 }, () => rotation.next()?.index);
      for (const start of [0, 37, 200]) {
        const counted = weights.map(
          (_, index) => selections.slice(start, start + 100).filter((selection) => selection === index).length,
        );
        expect(counted).toEqual(weights);
      }
    },
  );

  it('spreads a small weight evenly instead of in a burst', () => {
    const rotation = createWeightedRotation([{ weight: 10 }, { weight: 90 }]);
    const small = Array.from({ length: 100 }, () => rotation.next()).flatMap((member, selection) =>
      member?.weight === 10 ? [selection] : [],
    );
    expect(small.slice(1).map((selection, index) => selection - (small[index] ?? 0))).toEqual(new Array(9).fill(10));
  });

  it('selects nothing when all weights are 0', () => {
    expect(createWeightedRotation([{ weight: 0 }]).next()).toBeUndefined();
    expect(createWeightedRotation([]).next()).toBeUndefined();
  });
});
