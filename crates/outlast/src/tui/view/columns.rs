//! How wide each column of a list is: as wide as what is in it, while there is room. Then the widest give way,
//! and where even that does not do, the least important are left out.

/// A column: what it is called, how far it gives way, and how soon it is left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) narrowest: u16,
    /// So much of it is worth more than the columns that may go.
    pub(crate) enough: u16,
    /// More than this is left to the last column.
    pub(crate) widest: u16,
    /// Those with the highest go first. That with 0 stays, and gives way last.
    pub(crate) rank: u8,
}

/// Columns of this rank and above go before any other gives way too far.
const MAY_GO: u8 = 4;

/// The width of each column; 0 for those that are not shown. The last column takes what is left.
pub(crate) fn fit(columns: &[Column], natural: &[u16], width: u16, gap: u16) -> Vec<u16> {
    let natural = columns.iter().zip(natural);
    let mut widths: Vec<u16> = natural.map(|(column, wide)| (*wide).min(column.widest)).collect();
    leave_out(columns, &mut widths, MAY_GO, |widths| {
        least(columns, widths, gap, |column| column.enough) > u32::from(width)
    });
    leave_out(columns, &mut widths, 1, |widths| {
        least(columns, widths, gap, |column| column.narrowest) > u32::from(width)
    });
    shrink(columns, &mut widths, width, gap, |column| column.enough);
    shrink(columns, &mut widths, width, gap, |column| column.narrowest);
    shrink(columns, &mut widths, width, gap, |_| 0);
    let left = u32::from(width).saturating_sub(total(&widths, gap));
    if let Some(last) = widths.last_mut().filter(|last| **last > 0) {
        *last = last.saturating_add(u16::try_from(left).unwrap_or(u16::MAX));
    }
    widths
}

/// Leaves columns out, those of the highest rank first, while there is too little room.
fn leave_out(
    columns: &[Column],
    widths: &mut [u16],
    from_rank: u8,
    is_too_much: impl Fn(&[u16]) -> bool,
) {
    while is_too_much(widths) {
        let shown = (0..columns.len()).filter(|at| widths[*at] > 0);
        let may_go = shown.filter(|at| columns[*at].rank >= from_rank);
        let Some(last) = may_go.max_by_key(|at| columns[*at].rank) else { return };
        widths[last] = 0;
    }
}

/// Has those give way that exceed their least the most.
fn shrink(
    columns: &[Column],
    widths: &mut [u16],
    width: u16,
    gap: u16,
    least: impl Fn(&Column) -> u16,
) {
    while total(widths, gap) > u32::from(width) {
        let excess = |at: &usize| widths[*at].saturating_sub(least(&columns[*at]));
        let able = (0..columns.len()).filter(|at| excess(at) > 0);
        let Some(widest) = able.max_by_key(|at| (columns[*at].rank > 0, excess(at))) else {
            return;
        };
        widths[widest] -= 1;
    }
}

fn total(widths: &[u16], gap: u16) -> u32 {
    let shown = widths.iter().filter(|width| **width > 0);
    let (count, sum) =
        shown.fold((0, 0), |(count, sum), width| (count + 1, sum + u32::from(*width)));
    sum + u32::from(gap) * u32::saturating_sub(count, 1)
}

/// What the columns take that are shown, each as narrow as it may be.
fn least(columns: &[Column], widths: &[u16], gap: u16, of: impl Fn(&Column) -> u16) -> u32 {
    let both = columns.iter().zip(widths);
    let narrow: Vec<u16> = both.map(|(column, width)| (*width).min(of(column))).collect();
    total(&narrow, gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: [Column; 3] = [
        Column { title: "ID", narrowest: 4, enough: 12, widest: 12, rank: 0 },
        Column { title: "STATE", narrowest: 5, enough: 10, widest: 20, rank: 1 },
        Column { title: "LINE", narrowest: 6, enough: 8, widest: 200, rank: 5 },
    ];

    #[test]
    fn the_widest_give_way_and_the_least_important_are_then_left_out() {
        let at = |width| fit(&THREE, &[12, 18, 50], width, 1);
        assert_eq!(at(100), [12, 18, 68]);
        assert_eq!(at(50), [12, 18, 18]);
        assert_eq!(at(32), [12, 10, 8]);
        assert_eq!(at(31), [12, 18, 0]);
        assert_eq!(at(20), [12, 7, 0]);
        assert_eq!(at(10), [4, 5, 0]);
        assert_eq!(at(9), [9, 0, 0]);
        assert_eq!(at(0), [0, 0, 0]);
    }

    #[test]
    fn a_column_with_nothing_in_it_takes_no_room() {
        assert_eq!(fit(&THREE, &[12, 0, 5], 40, 2), [12, 0, 26]);
    }
}
