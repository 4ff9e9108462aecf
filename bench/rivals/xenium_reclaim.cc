/*
 * xenium_reclaim.cc - a shared value under each of xenium's reclamation schemes. A read guards the
 * pointer; a write reclaims the old value.
 *
 * With hazard pointers, hazard eras and reference counts, a guard that is kept keeps one value
 * alive. With the other schemes it keeps everything alive that is retired after it.
 */
#include <array> /* missing in generic_epoch_based.hpp */
#include <xenium/reclamation/generic_epoch_based.hpp>
#include <xenium/reclamation/hazard_eras.hpp>
#include <xenium/reclamation/hazard_pointer.hpp>
#include <xenium/reclamation/lock_free_ref_count.hpp>
#include <xenium/reclamation/quiescent_state_based.hpp>
#include <xenium/reclamation/stamp_it.hpp>

#include "reads.hh"

namespace
{

namespace schemes = xenium::reclamation;
const char version[] = "xenium " WEIR_BENCH_XENIUM_VERSION;
const char lacks[] = "takes no reference; a stopped reader keeps all memory";

/*
 * Unlink is the order in which a write replaces the pointer. stamp_it needs seq_cst: a retired value gets a stamp that is read after
 * the pointer was replaced, and a reader that draws a later stamp must see the replacement. Its authors' structures unlink by a
 * compare-and-swap, which is such a fence on x86. With a plain store the stamp could be read first, and a value that a reader had
 * found was freed under it.
 */
template <class Scheme, std::memory_order Unlink = std::memory_order_release> struct under {
	template <size_t N> struct node : Scheme::template enable_concurrent_ptr<node<N>> {
		explicit node(uint64_t value) : value(value)
		{
		}

		bench::words<N> value;
	};

	template <size_t N> struct cell final : bench::reads {
		using pointer = typename Scheme::template concurrent_ptr<node<N>>;
		using guard = typename pointer::guard_ptr;

		cell() : current(new node<N>(0))
		{
		}

		~cell() override
		{
			guard last;

			last.acquire(current, std::memory_order_acquire);
			current.store(nullptr, std::memory_order_release);
			last.reclaim();
		}

		uint64_t read_many(uint64_t count) override
		{
			uint64_t sum = 0;

			for (uint64_t i = 0; i < count; i++) {
				guard now;

				now.acquire(current, std::memory_order_acquire);
				sum += now->value.word[0];
			}
			return sum;
		}

		uint64_t scan_many(uint64_t count) override
		{
			uint64_t torn = 0;

			for (uint64_t i = 0; i < count; i++) {
				guard now;

				now.acquire(current, std::memory_order_acquire);
				torn += now->value.torn();
			}
			return torn;
		}

		void replace(uint64_t value) override
		{
			guard old;

			old.acquire(current, std::memory_order_acquire);
			current.store(new node<N>(value), Unlink);
			old.reclaim();
		}

		pointer current;
	};
};

template <size_t N> using hazard_pointers = under<schemes::hazard_pointer<>>::cell<N>;
template <size_t N> using hazard_eras = under<schemes::hazard_eras<>>::cell<N>;
template <size_t N> using reference_counts = under<schemes::lock_free_ref_count<>>::cell<N>;
template <size_t N> using epochs = under<schemes::epoch_based<>>::cell<N>;
template <size_t N> using new_epochs = under<schemes::new_epoch_based<>>::cell<N>;
template <size_t N> using debra = under<schemes::debra<>>::cell<N>;
template <size_t N> using quiescent_states = under<schemes::quiescent_state_based>::cell<N>;
template <size_t N> using stamp_it = under<schemes::stamp_it, std::memory_order_seq_cst>::cell<N>;

} // namespace

extern "C" {
const read_contender xenium_hp_contender = bench::read<hazard_pointers>({"xenium hazard_pointer", version, nullptr, 1});
const read_contender xenium_he_contender = bench::read<hazard_eras>({"xenium hazard_eras", version, nullptr, 1});
const read_contender xenium_lfrc_contender =
	bench::read<reference_counts>({"xenium lock_free_ref_count", version, nullptr, 1});
const read_contender xenium_ebr_contender = bench::read<epochs>({"xenium epoch_based", version, lacks, 1});
const read_contender xenium_nebr_contender = bench::read<new_epochs>({"xenium new_epoch_based", version, lacks, 1});
const read_contender xenium_debra_contender = bench::read<debra>({"xenium debra", version, lacks, 1});
const read_contender xenium_qsbr_contender =
	bench::read<quiescent_states>({"xenium quiescent_state_based", version, lacks, 1});
const read_contender xenium_stamp_it_contender = bench::read<stamp_it>({"xenium stamp_it", version, lacks, 1});
}
