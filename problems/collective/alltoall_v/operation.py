"""All-to-all of ragged rows. `out` keeps the first `room` rows in the order of their sources."""
import torch
import torch.distributed as dist


def operation(counts: torch.Tensor, inp: torch.Tensor, out: torch.Tensor, arrived: torch.Tensor) -> None:
    coming = torch.empty_like(counts)  # [world]: rows from each source
    dist.all_to_all_single(coming, counts)
    sends, receives = counts.tolist(), coming.tolist()
    rows = torch.empty(sum(receives), inp.shape[1], dtype=inp.dtype, device=inp.device)
    dist.all_to_all_single(rows, inp[: sum(sends)], output_split_sizes=receives, input_split_sizes=sends)

    room, taken = out.shape[0], 0
    for source, count in enumerate(receives):
        kept = min(count, room - taken)
        arrived[source] = kept
        taken += kept
    out[:taken] = rows[:taken]  # what lies behind stays as it was


def main() -> None:
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    for rows, words, room in ((128, 256, 256), (1024, 256, 1280)):
        counts = torch.randint(0, rows // world + 1, (world,), dtype=torch.int32, device="cuda")
        inp = torch.randint(-(2**31), 2**31, (rows, words), dtype=torch.int32, device="cuda")
        out = torch.full((room, words), -1, dtype=torch.int32, device="cuda")
        operation(counts, inp, out, torch.empty_like(counts))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
