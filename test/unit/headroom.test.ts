import { expect } from 'chai';
import { type Course, missed } from '../../ts/evaluation/headroom.js';

describe('the room beside a policy', () => {
  const course = (success: boolean, ...outcomes: (boolean | null)[][]): Course =>
    ({
      record: {},
      success,
      forks: outcomes.map((own) => ({ step: {}, history: [], outcomes: own })),
    }) as never;

  it('is each state of a failed episode in which another candidate would have won', () => {
    const courses = [
      course(true, [true, true], [true, false]),
      course(false, [false, null, false]),
      course(false, [false, true], [false, false], [false, null, true]),
    ];
    expect(missed(courses).map((one) => [courses.indexOf(one.course), one.index])).to.deep.equal([
      [2, 0],
      [2, 2],
    ]);
  });
});
