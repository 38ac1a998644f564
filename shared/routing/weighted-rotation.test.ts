import { describe, expect, it } from 'vitest';
import { createWeightedRotation } from './weighted-rotation.ts';

describe('weighted rotation', () => {
  it.each([[[10, 90]], [[25, 75]], [[50, 50]], [[1, 99]], [[33, 33, 34]], [[0, 100]]])(
    'gives %j exactly, whatever 100 turns one counts',
    (weights) => {
      const rotation = createWeightedRotation(weights.map((weight, index) => ({ weight, index })));
      const turns = Array.from({ length: 300 }, () => rotation.next()?.index);
      for (const start of [0, 37, 200]) {
        const counted = weights.map((_, index) => turns.slice(start, start + 100).filter((turn) => turn === index).length);
        expect(counted).toEqual(weights);
      }
    },
  );

  it('spreads a small weight evenly instead of in a burst', () => {
    const rotation = createWeightedRotation([{ weight: 10 }, { weight: 90 }]);
    const small = Array.from({ length: 100 }, () => rotation.next()).flatMap((member, turn) =>
      member?.weight === 10 ? [turn] : [],
    );
    expect(small.slice(1).map((turn, index) => turn - (small[index] ?? 0))).toEqual(new Array(9).fill(10));
  });

  it('has nobody to give a turn to when all weights are 0', () => {
    expect(createWeightedRotation([{ weight: 0 }]).next()).toBeUndefined();
    expect(createWeightedRotation([]).next()).toBeUndefined();
  });
});
