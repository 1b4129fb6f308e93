"""Weighted sum of expert answers, by ascending number of the expert."""
import torch
import torch.distributed as dist


def operation(y, to, gates, used, tokens, out) -> None:
    """y: [per, most, hidden] bf16, to, gates: [per, most], used: [per], out: [tokens, hidden]."""
    world, (per, most, hidden) = dist.get_world_size(), y.shape
    valid = torch.arange(most, device=y.device) < used[:, None]
    rows = torch.zeros(world * tokens, per, hidden, dtype=y.dtype, device=y.device)
    gate = torch.zeros(world * tokens, per, device=y.device)
    expert = torch.arange(per, device=y.device)[:, None].expand(per, most)
    # Every token has room for an answer of every expert; those that are missing count nothing.
    rows[to[valid].long(), expert[valid]] = y[valid]
    gate[to[valid].long(), expert[valid]] = gates[valid]
    all_rows, all_gates = torch.empty_like(rows), torch.empty_like(gate)
    dist.all_to_all_single(all_rows, rows)
    dist.all_to_all_single(all_gates, gate)
    sums = torch.zeros(tokens, hidden, device=y.device)
    for r in range(world):
        mine = slice(r * tokens, (r + 1) * tokens)
        for e in range(per):
            # fmaf is asked for. float64 comes next to it: a product of floats is exact in it.
            product = all_gates[mine, e, None].double() * all_rows[mine, e].double()
            sums = (product + sums.double()).float()
    out.copy_(sums)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, per = dist.get_world_size(), 2
    for tokens, most, hidden in ((4, 8, 128), (16, 16, 512)):
        y = torch.randn(per, most, hidden, dtype=torch.bfloat16, device="cuda")
        to = torch.stack([torch.randperm(world * tokens, device="cuda")[:most] for _ in range(per)])
        used = torch.randint(0, most + 1, (per,), device="cuda")
        gates = torch.rand(per, most, device="cuda")
        operation(y, to.to(torch.int32), gates, used, tokens, torch.empty(tokens, hidden, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
