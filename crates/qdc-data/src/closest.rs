//! "Did you mean": names in the order of their distance to what was typed.

/// `known` with the closest to `name` first; of equally close ones, in their own order.
pub fn by_closeness(name: &str, mut known: Vec<String>) -> Vec<String> {
    known.sort_by_key(|candidate| distance(name, candidate));
    known
}

/// The number of letters to insert, drop, change, or swap with their neighbour, to turn one word into the
/// other (the optimal string alignment distance).
pub(crate) fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
                let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                    least = least.min(rows[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_of_two_letters_counts_one() {
        assert_eq!(distance("wieght", "weight"), 1);
        assert_eq!(distance("", "mu"), 2);
        assert_eq!(distance("layers", "layers"), 0);
        assert_eq!(distance("learnign_rat", "learning_rate"), 2);
    }
}
