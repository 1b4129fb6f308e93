"""Ring attention over the columns of a grid of ranks; output products are summed over its rows."""
import torch
import torch.distributed as dist


def operation(q, k, v, w, tp: int, row_group, out) -> None:
    """q, k, v: [heads, rows, 64], w: [cols, heads, 64] bf16; out: [rows, cols]."""
    world, rank = dist.get_world_size(), dist.get_rank()
    before, after = (rank - tp) % world, (rank + tp) % world
    total = torch.zeros(*q.shape[:2], 1, device=q.device)
    output = torch.zeros(q.shape, device=q.device)
    here = torch.stack([k, v])
    for step in range(world // tp):
        last = step + 1 == world // tp
        if not last:  # pass keys and values on while they are used
            there = torch.empty_like(here)
            requests = dist.batch_isend_irecv(
                [dist.P2POp(dist.isend, here, after), dist.P2POp(dist.irecv, there, before)]
            )
        weights = torch.exp(q.float() @ here[0].float().transpose(1, 2) / 8)
        total += weights.sum(dim=2, keepdim=True)
        output += weights @ here[1].float()
        if not last:
            for request in requests:
                request.wait()
            here = there
    out.copy_(torch.einsum("hid,mhd->im", output / total, w.float()))
    dist.all_reduce(out, group=row_group)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, rank, tp = dist.get_world_size(), dist.get_rank(), 2
    groups = [dist.new_group(list(range(first, first + tp))) for first in range(0, world, tp)]

    def small(*shape):
        return torch.randint(-2, 3, shape, device="cuda").to(torch.bfloat16)

    for heads, rows, cols in ((1, 8, 64), (2, 16, 64)):
        qkv = [small(heads, rows, 64) for _ in range(3)]
        out = torch.empty(rows, cols, device="cuda")
        operation(*qkv, small(cols, heads, 64), tp, groups[rank // tp], out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
