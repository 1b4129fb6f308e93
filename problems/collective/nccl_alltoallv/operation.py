"""Ragged all-to-all with counts that follow from the ranks; blocks are padded at the target."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor, rows: int, slope: int, align: int) -> None:
    """inp: [world * rows, width]; out: [world * padded rows, width]; words of 32 bits."""
    rank, world = dist.get_rank(), dist.get_world_size()

    def count(source: int, target: int) -> int:
        return (slope * source + 2 * target + source * target + 1) % (rows + 1)

    sends = [count(rank, peer) for peer in range(world)]
    receives = [count(peer, rank) for peer in range(world)]
    blocks, to = [], 0
    for received in receives:
        blocks.append(out[to : to + received])
        to += -(-received // align) * align
    dist.all_to_all(blocks, list(inp[: sum(sends)].split(sends)))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    rows, slope, align = 6, 5, 4
    world = dist.get_world_size()
    for width in (256, 4096):
        inp = torch.randint(-(2**31), 2**31, (world * rows, width), dtype=torch.int32, device="cuda")
        out = torch.empty(world * -(-rows // align) * align, width, dtype=inp.dtype, device="cuda")
        operation(inp, out, rows, slope, align)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
