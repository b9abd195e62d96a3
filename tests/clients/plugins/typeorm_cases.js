/* Writes down the cases during which TypeORM has had a data source for Spanner open: the others are
   of other databases, and pass without having asked any. */
const {writeFileSync} = require('fs');
const {SpannerDriver} = require(`${process.env.TYPEORM}/driver/spanner/SpannerDriver.js`);

const {connect, disconnect} = SpannerDriver.prototype;
const cases = [];
let open = 0;
let opened = 0;

SpannerDriver.prototype.connect = function () {
  open += 1;
  opened += 1;
  return connect.call(this);
};

SpannerDriver.prototype.disconnect = function () {
  open -= 1;
  return disconnect.call(this);
};

exports.mochaHooks = {
  afterEach() {
    const {parent, title} = this.currentTest;
    if (open > 0 || opened > 0) cases.push(`${parent.fullTitle()}.${title}`);
    opened = 0;
  },
  afterAll() {
    writeFileSync(process.env.CASES, JSON.stringify(cases));
  },
};
