//! One row of a kernel as it is decided what stays.

use super::{Row, Rule, Sparsify, TIE};

/// Collects the entries of one row, in the order of the columns.
pub(super) struct Keeper<'a> {
    rule: &'a Rule,
    pub(super) first_column: u32,
    /// Sizes below this need not be offered.
    pub(super) floor: f64,
    /// How many may gather before the small ones are dropped (top-k).
    limit: usize,
    pub(super) row: Row,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(rule: &'a Rule, row: u32) -> Self {
        let limit = match rule.sparsify {
            Sparsify::TopK(k) => (4 * k).max(256),
            Sparsify::Epsilon(_) | Sparsify::None => usize::MAX,
        };
        Self { rule, first_column: rule.first_column(row), floor: rule.floor(), limit, row: Row::default() }
    }

    /// Makes room for so many entries, or for as many as may gather.
    pub(super) fn reserve(&mut self, entries: usize) {
        let room = entries.min(self.limit);
        self.row.columns.reserve(room);
        self.row.values.reserve(room);
    }

    pub(super) fn offer(&mut self, column: u32, value: f64) {
        self.row.columns.push(column);
        self.row.values.push(value);
        if self.row.columns.len() >= self.limit
            && let Sparsify::TopK(k) = self.rule.sparsify
        {
            // The k-th largest of all is at least the k-th largest so far.
            self.floor = self.floor.max(self.nth_largest(k) - TIE);
            let floor = self.floor;
            self.retain(|size| size >= floor);
            self.limit = self.limit.max(2 * self.row.columns.len());
        }
    }

    pub(super) fn finish(mut self) -> Row {
        if let Sparsify::TopK(k) = self.rule.sparsify
            && self.row.columns.len() > k
        {
            let edge = self.nth_largest(k);
            let above = self.row.values.iter().filter(|&&v| self.rule.sign.size(v) > edge + TIE).count();
            let mut room = k - above;
            self.retain(|size| {
                let tied = size <= edge + TIE && size >= edge - TIE && room > 0;
                room -= usize::from(tied);
                tied || size > edge + TIE
            });
        }
        self.row
    }

    fn nth_largest(&self, n: usize) -> f64 {
        let mut sizes: Vec<f64> = self.row.values.iter().map(|&value| self.rule.sign.size(value)).collect();
        *sizes.select_nth_unstable_by(n - 1, |a, b| b.total_cmp(a)).1
    }

    fn retain(&mut self, mut keep: impl FnMut(f64) -> bool) {
        let Row { columns, values } = &mut self.row;
        let mut kept = 0;
        for at in 0..columns.len() {
            if keep(self.rule.sign.size(values[at])) {
                (columns[kept], values[kept]) = (columns[at], values[at]);
                kept += 1;
            }
        }
        columns.truncate(kept);
        values.truncate(kept);
    }
}
